# Writes zph.json: scaled Schoenfeld residuals of cox.zph and the curves of plot.cox.zph, whose
# lines are repeated here because it draws them and returns nothing. Run in this folder.
suppressMessages({library(survival);library(splines);library(jsonlite)})
smooth<-function(z,i,df=4,nsmo=40){
  keep<-!is.na(z$y[,i]); xx<-z$x; pred<-seq(min(xx),max(xx),length=nsmo); all<-c(pred,xx)
  lmat<-ns(all,df=df,intercept=TRUE); pmat<-lmat[1:nsmo,]; xmat<-lmat[-(1:nsmo),]
  q<-qr(xmat[keep,]); fit<-pmat%*%qr.coef(q,z$y[keep,i])
  bk<-backsolve(q$qr[1:df,1:df],diag(df)); xtx<-bk%*%t(bk); se<-((pmat%*%xtx)*pmat)%*%rep(1,df)
  at<-c(1,10,20,30,40)
  list(x=pred[at],fit=fit[at],half=(2*sqrt(z$var[i,i]*se))[at])
}
case<-function(file,formula,ties,transform,columns){
  d<<-na.omit(read.csv(file))  # cox.zph looks for it among global names
  f<-do.call(coxph,list(formula,quote(d),ties=ties,control=coxph.control(eps=1e-12,iter.max=100,toler.chol=1e-14)))
  z<-cox.zph(f,transform=transform,terms=FALSE)
  n<-min(14,nrow(z$y)); o<-order(z$time,z$y[,1])  # residuals of a time in a given order
  list(file=file,ties=ties,transform=transform,columns=columns,time=z$time[o][1:n],x=z$x[o][1:n],
    y=unname(z$y[o,,drop=FALSE][1:n,,drop=FALSE]),n=nrow(z$y),sum=unname(colSums(z$y,na.rm=TRUE)),
    var=unname(z$var),curves=lapply(seq_along(columns),function(i) smooth(z,i)))
}
out<-list(
  lung=case("lung.csv",Surv(time,event)~age+sex+ph.ecog,"efron","km",c("age","sex","ph.ecog")),
  lung_log=case("lung.csv",Surv(time,event)~age+sex+ph.ecog,"breslow","log",c("age","sex","ph.ecog")),
  lung_strata=case("lung.csv",Surv(time,event)~age+ph.ecog+strata(sex),"efron","rank",c("age","ph.ecog")),
  heart=case("heart.csv",Surv(start,stop,event)~age+year+surgery,"breslow","identity",c("age","year","surgery")))
write(toJSON(out,digits=12,auto_unbox=TRUE,pretty=FALSE,na="null"),"zph.json")
