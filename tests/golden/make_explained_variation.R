# Writes explained_variation.csv: AIC, BIC and royston of coxph fits. Run in this folder.
suppressMessages(library(survival))
lung<-na.omit(read.csv("lung.csv")[,c("time","event","age","sex","ph.ecog")]); vet<-read.csv("veteran.csv")
ct<-coxph.control(eps=1e-13,iter.max=100,toler.chol=1e-14)
fits<-list(
  lung=coxph(Surv(time,event)~age+sex+ph.ecog,lung,control=ct),
  lung_tied=coxph(Surv(time,event)~sex+ph.ecog,lung,control=ct),  # predictors are tied
  veteran=coxph(Surv(time,event)~karno+age+diagtime,vet,control=ct))
out<-do.call(rbind,lapply(names(fits),function(k){ f<-fits[[k]]; r<-royston(f)
  v<-c(aic=AIC(f),bic=BIC(f),d=r[["D"]],se=r[["se(D)"]],r2_d=r[["R.D"]],r2_ko=r[["R.KO"]],r2_n=r[["R.N"]],
    n=f$n,events=f$nevent,loglik0=f$loglik[1],loglik=f$loglik[2])
  data.frame(case=k,name=names(v),value=formatC(v,digits=17,format="g"))}))
d<-coxph(Surv(time,event)~karno+age+diagtime,vet,subset=(seq_along(time)%%2==0),control=ct)
r<-royston(d,newdata=vet) # other rows than those of the fit
out<-rbind(out,data.frame(case="veteran_new",name=c("d","se","r2_d","r2_ko"),value=formatC(r[c("D","se(D)","R.D","R.KO")],digits=17,format="g")))
write.csv(out,"explained_variation.csv",row.names=FALSE,quote=FALSE)
